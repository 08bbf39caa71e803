//go:build !race

package run_test

const muchOutput = 200_000_000
