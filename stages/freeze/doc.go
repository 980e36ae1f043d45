// Package freeze takes the snapshot that all members of a run start from.
//
// A git folder is frozen as its commit and the files that differ from it; any
// other folder as a tree of content-addressed nodes (package tree). Links are
// stored as links and never followed, also not when somebody puts one in the
// place of a folder meanwhile. What the snapshot does not hold is named with the
// reason: unreadable, special, too_large, too_deep, changing, submodule.
//
// The stage is keyed: freezing an unchanged folder again gives the same snapshot,
// and reads no file. It writes to the store and nowhere else; a crash leaves there
// at most packs that nobody names.
package freeze
