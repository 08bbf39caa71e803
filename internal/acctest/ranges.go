package acctest

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
)

// idsPerTest is how many container ids a test gets on a real server.
const idsPerTest = 20

// ranges hands out parts of a real server's vmid range to the tests of this process. `make acceptance` runs one package
// at a time, so that two processes never share the range.
var ranges = struct {
	sync.Mutex
	taken []int // indexes of parts that are in use
	freed *sync.Cond
}{}

// takeRange narrows env to a part of its vmid range and the addresses that go with it, for as long as the test lasts.
// It waits when all parts are in use.
func takeRange(t testing.TB, env *Environment) {
	t.Helper()
	parts := (env.VMIDs.Last - env.VMIDs.First + 1) / idsPerTest

	ranges.Lock()
	defer ranges.Unlock()
	if ranges.freed == nil {
		ranges.freed = sync.NewCond(&ranges.Mutex)
	}
	part := freePart(parts)
	for part < 0 {
		ranges.freed.Wait()
		part = freePart(parts)
	}
	ranges.taken = append(ranges.taken, part)
	t.Cleanup(func() {
		ranges.Lock()
		defer ranges.Unlock()
		ranges.taken = slices.DeleteFunc(ranges.taken, func(p int) bool { return p == part })
		ranges.freed.Broadcast()
	})

	env.VMIDs.First += part * idsPerTest
	env.VMIDs.Last = env.VMIDs.First + idsPerTest - 1
	env.Addresses.First = advance(env.Addresses.First, part*idsPerTest)
}

func freePart(parts int) int {
	for part := range parts {
		if !slices.Contains(ranges.taken, part) {
			return part
		}
	}
	return -1
}

// advance returns the address n after a.
func advance(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}
