// Package pipeline reads pipeline files: which implementation fills each stage,
// and its options. What a file does not say is as in Default.
//
// It is strict: an unknown section, implementation or option, a stage of another
// kind and an option of the wrong shape are errors that name the line and, where
// there is one, the nearest name that is known. A pipeline that loads has
// options that its stages take; whether a program they name exists is found out
// when it runs.
package pipeline
