//go:build !linux

package environment

func mounted(f *fixture) { f.Skip("nothing is mounted here") }
