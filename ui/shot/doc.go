// Package shot renders the window's content to pictures without a display. It
// needs cgo on Linux; elsewhere it needs what the system's graphics need.
package shot
