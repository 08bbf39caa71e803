package server

// rootUser is the superuser: everything is allowed to it when it came by password.
const rootUser = "root@pam"

// user is an account of a realm.
type user struct {
	ID        string            `json:"id"` // name@realm
	Password  string            `json:"password,omitempty"`
	Enable    bool              `json:"enable"`
	Expire    int64             `json:"expire"` // unix seconds, 0: never
	Comment   string            `json:"comment,omitempty"`
	Email     string            `json:"email,omitempty"`
	FirstName string            `json:"firstname,omitempty"`
	LastName  string            `json:"lastname,omitempty"`
	Keys      string            `json:"keys,omitempty"`
	Tokens    map[string]*token `json:"tokens,omitempty"`
}

// token is an API token of a user.
type token struct {
	ID      string `json:"id"`
	Secret  string `json:"secret"`
	PrivSep bool   `json:"privsep"`
	Expire  int64  `json:"expire"`
	Comment string `json:"comment,omitempty"`
}

// group is a set of users.
type group struct {
	ID      string          `json:"id"`
	Comment string          `json:"comment,omitempty"`
	Users   map[string]bool `json:"users"`
}

// role is a set of privileges. Special ones are built in.
type role struct {
	ID      string          `json:"id"`
	Privs   map[string]bool `json:"privs"`
	Special bool            `json:"special"`
}

// domain is an authentication realm.
type domain struct {
	ID      string            `json:"id"`
	Type    string            `json:"type"`
	Comment string            `json:"comment,omitempty"`
	Options map[string]string `json:"options,omitempty"`
}

// aclEntry gives a role to somebody on a path.
type aclEntry struct {
	Path      string `json:"path"`
	Kind      string `json:"kind"` // user, group, token
	Who       string `json:"who"`
	Role      string `json:"role"`
	Propagate bool   `json:"propagate"`
}
