// Package tree is the stored form of a folder, and the ways back to a folder.
//
// A folder is one node per directory, named by its hash, so that equal folders
// are one node however often they occur. A node is the line "witan-tree-1" and
// its entries, sorted by name: type (f file, x executable, l link, d directory),
// length of the name, name, SHA-256 of the content (of the target text for a
// link, of the node for a directory), size. Whatever decodes encodes to the same
// bytes. Names are kept byte by byte; [EncodePath] carries them through JSON.
//
// [Checkout] writes a tree to a folder, [Overlay] the files of a candidate over one,
// [Materialise] the frozen state of a workspace, a git one too. All write only below the folder they are given, which
// an error or a crash leaves unfinished: it is the caller's to remove.
package tree
