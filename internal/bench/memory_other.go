//go:build !unix

package bench

import "os"

// peakMemory isn't known here.
func peakMemory(*os.ProcessState) int64 { return 0 }
