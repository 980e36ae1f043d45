// Package window draws the window: sidebar, conversation, composer, inspector,
// palette, settings and welcome. It reads one immutable model.State, keeps only
// what concerns the looking (what is folded, how far a list is scrolled, a draft),
// and gives what a person asks for to its Hooks. It opens no window and starts no
// goroutine, so that it can be driven and drawn without a display.
//
// Every control is a button or an editor in the semantic tree, named by the word
// that it shows or does.
package window
