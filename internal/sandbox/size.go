package sandbox

import (
	"fmt"
	"math/big"
	"strings"
)

// sizeUnits are binary, as in all of Proxmox VE: 1G is 1,024 MiB. The value is
// the unit in bytes.
var sizeUnits = map[string]int64{
	"k": 1 << 10, "kib": 1 << 10, "kb": 1 << 10,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1 << 20, "": 1 << 20,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1 << 30,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1 << 40,
}

// SizeMiB reads a size such as "512", "512M", "1.5G", "2GiB" or "1T" and
// returns it in MiB. Units are binary whatever their spelling (as Proxmox VE's
// are); a number alone is MiB. A size that isn't a whole number of MiB is an
// error rather than rounded.
func SizeMiB(text string) (int64, error) {
	s := strings.TrimSpace(text)
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	number, unit := s, ""
	if end >= 0 {
		number, unit = s[:end], strings.ToLower(strings.TrimSpace(s[end:]))
	}
	factor, ok := sizeUnits[unit]
	if !ok {
		return 0, fmt.Errorf("size %q: the unit %q is none of K, M, G, T (binary)", text, unit)
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok || len(number) > 32 || strings.HasSuffix(number, ".") || strings.HasPrefix(number, ".") {
		return 0, fmt.Errorf("size %q: %q is no number", text, number)
	}
	value.Mul(value, new(big.Rat).SetFrac64(factor, 1<<20))
	if !value.IsInt() || !value.Num().IsInt64() {
		return 0, fmt.Errorf("size %q: not a whole number of MiB", text)
	}
	return value.Num().Int64(), nil
}
