// Mutants weakens the protocol and the rules of the rig on purpose, one edit at
// a time, and demands that the tests notice each.
//
//	go run ./chipset/chipsettest/mutants [-systematic [-since REV]] [-run RE] [-sample N] [-seed S] [-time D] [-atleast SHARE] [-with PKG,…] [-j N] [-list]
//
// The edits are in mutants.txt: a name, the file, the packages and the tests that must
// fail, a sentence that says what is weakened, and the text before and after. Each edit is
// an overlay of the go command, so nothing is copied and several can run at the same time.
// The overlay is passed in GOFLAGS, so that it also applies to binaries that tests build.
//
// With -systematic the edits are made by operators instead: conditions negated,
// boundaries moved, errors ignored or swallowed, statements left out, two steps
// swapped, a lock released early, in every package whose mistakes could lose work. All
// mutants of a package are compiled into one test binary, each behind a switch that an
// environment variable sets. Each test runs once alone, to find which switches it
// reaches; then each mutant is tried with the tests that reach it. Survivors are tried
// with the tests of other packages: those named in systematic.go, then those of -with,
// "package:regexp" for some tests of a package. -since REV makes mutants only in changed
// lines. equivalent.txt lists mutants that change nothing. At least 90% of those that
// compile must be caught, or -atleast SHARE. -time D tries them for that long, one package
// after the other, in random order.
//
// The exit code is 1 if a mutant survives, does not compile, or does not apply any more
// because the code has changed: then update its text, or move the mutant with its rule.
package main
