//go:build race

package run_test

// muchOutput is less here: the detector makes the simulated guest's pipes ten times slower.
const muchOutput = 24_000_000
