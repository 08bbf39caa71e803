package audit

// check is a check with how it is made: by one of the two functions.
type check struct {
	Check
	container func(*Container, Options) verdict
	guest     func(*system) verdict
}

// groups are the checks as the documentation lists them.
var groups = []struct {
	title  string
	part   Part
	checks []check
}{
	{"Container configuration", PartContainer, containerChecks},
	{"SSH", PartGuest, sshChecks},
	{"Accounts and keys", PartGuest, accountChecks},
	{"Identity", PartGuest, identityChecks},
	{"Packages and services", PartGuest, serviceChecks},
	{"Files", PartGuest, fileChecks},
	{"Secrets and history", PartGuest, secretChecks},
	{"Limits and walls", PartGuest, wallChecks},
	{"What was built in", PartGuest, builtChecks},
}

var registry = func() []check {
	var all []check
	for _, g := range groups {
		for _, c := range g.checks {
			c.Group, c.Part = g.title, g.part
			all = append(all, c)
		}
	}
	return all
}()
