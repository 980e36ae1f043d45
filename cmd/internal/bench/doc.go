// Package bench holds the benchmarks that need more than one system at a time.
// Each prints its figures as ratios to a floor that is measured in the same run;
// none is a timed test.
package bench
