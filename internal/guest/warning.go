package guest

// Warning is something that the user should know and that stops nothing.
type Warning struct {
	Summary string
	Detail  string
}
