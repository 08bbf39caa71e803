//go:build unix

package bench

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the largest resident size of an ended process, in bytes.
func peakMemory(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss) //nolint:unconvert // int32 on some systems; macOS counts bytes
	}
	return int64(usage.Maxrss) * 1024 //nolint:unconvert // int32 on some systems; others count KiB
}
