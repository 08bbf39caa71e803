// Package filetree copies, packs and unpacks the file trees of guests: owners are shifted into the guests' range of ids, and
// what overlayfs keeps in a layer (whiteouts, opaque folders) survives a copy.
package filetree
