// Package placement decides on which nodes new sandboxes go, and says what they would exceed. It is pure: what it
// knows of nodes comes in, and nothing is asked.
package placement
