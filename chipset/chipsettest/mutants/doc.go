// Mutants weakens the protocol and the rules of the rig on purpose, one edit at
// a time, and demands that the tests notice each.
//
//	go run ./chipset/chipsettest/mutants [-systematic [-since REV]] [-run RE] [-sample N] [-seed S] [-time D] [-atleast SHARE] [-with PKG,…] [-j N] [-list]
//
// The edits stand in mutants.txt: a name, the file, the packages and the tests
// that must fail, a sentence that says what is weakened, and the text before
// and after. An edit lives in an overlay of the go command, so nothing is
// copied and several run side by side. The overlay goes into GOFLAGS, and so
// into the binaries that tests build themselves.
//
// With -systematic the edits are made by operators instead: conditions negated,
// boundaries moved, errors ignored or swallowed, statements left out, two steps
// swapped, a lock freed early, in every package whose mistakes cost somebody their
// work. All of a package are compiled into one test binary, each behind a switch that
// an environment variable turns. Each test runs once alone, which shows what it
// reaches; then each mutant is tried with the tests that reach it. What survives is
// tried with the tests of other packages: those that systematic.go names, then those
// of -with, "package:regexp" for some of its tests. -since REV takes those in changed
// lines alone. equivalent.txt lists the ones that change nothing. At
// least 90% of what compiles must be caught, or -atleast SHARE. -time D tries them for
// that long, one package after the other, in an order that is drawn.
//
// The exit code is 1 when a mutant survives, does not compile, or does not
// apply any more because the code has changed: then its text is brought up to
// date, or the rule has moved and so must the mutant.
package main
