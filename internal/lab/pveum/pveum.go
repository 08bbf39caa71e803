// Package pveum stands in for the command lines of a Proxmox VE node, pveum and pvesh, in front of a lab: what a script or
// a documentation tells an administrator to type can be run, and has its effect.
package pveum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CLI runs commands against a server's API, as root would on the node.
type CLI struct {
	// Endpoint is "https://127.0.0.1:40113", Token "user@realm!id=secret" of an administrator.
	Endpoint, Token string
	HTTP            *http.Client
}

// Run runs "pveum …" or "pvesh …" and prints what they print with --output-format json. Without that option the real ones
// draw a table, which nobody should read by program: a word stands for it.
func (c CLI) Run(ctx context.Context, argv []string, out io.Writer) error {
	if len(argv) == 0 {
		return errors.New("no command")
	}
	words, options, err := parse(argv[1:])
	if err != nil {
		return err
	}
	format := options["output-format"]
	delete(options, "output-format")
	var r request
	switch argv[0] {
	case "pveum":
		r, err = pveum(words, options)
	case "pvesh":
		r, err = pvesh(words, options)
	default:
		err = fmt.Errorf("unknown command %q", argv[0])
	}
	if err != nil {
		return err
	}
	data, err := c.send(ctx, r)
	if err != nil || string(data) == "null" {
		return err
	}
	text := string(data)
	if format != "json" {
		text = "(a table)"
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// request is a call of the API.
type request struct {
	method, path string
	params       map[string]string
}

// parse splits words from options; options are "--key value", with one dash or two.
func parse(args []string) (words []string, options map[string]string, err error) {
	options = map[string]string{}
	for i := 0; i < len(args); i++ {
		key, isOption := strings.CutPrefix(args[i], "-")
		if !isOption {
			words = append(words, args[i])
			continue
		}
		key, value, joined := strings.Cut(strings.TrimPrefix(key, "-"), "=")
		if !joined {
			if i+1 >= len(args) {
				return nil, nil, fmt.Errorf("option --%s needs a value", key)
			}
			i++
			value = args[i]
		}
		options[key] = value
	}
	return words, options, nil
}

// command is one of pveum's: its words, then its arguments, which have a place in the path or are parameters.
type command struct {
	method, path string
	args         []string // {name} of the path, or a parameter
	fixed        map[string]string
}

var commands = map[string]command{
	"role add":          {"POST", "/access/roles", []string{"roleid"}, nil},
	"role modify":       {"PUT", "/access/roles/{roleid}", []string{"roleid"}, nil},
	"role delete":       {"DELETE", "/access/roles/{roleid}", []string{"roleid"}, nil},
	"role list":         {"GET", "/access/roles", nil, nil},
	"user add":          {"POST", "/access/users", []string{"userid"}, nil},
	"user delete":       {"DELETE", "/access/users/{userid}", []string{"userid"}, nil},
	"user list":         {"GET", "/access/users", nil, nil},
	"user token add":    {"POST", "/access/users/{userid}/token/{tokenid}", []string{"userid", "tokenid"}, nil},
	"user token modify": {"PUT", "/access/users/{userid}/token/{tokenid}", []string{"userid", "tokenid"}, nil},
	"user token remove": {"DELETE", "/access/users/{userid}/token/{tokenid}", []string{"userid", "tokenid"}, nil},
	"user token list":   {"GET", "/access/users/{userid}/token", []string{"userid"}, nil},
	"acl modify":        {"PUT", "/access/acl", []string{"path"}, nil},
	"acl delete":        {"PUT", "/access/acl", []string{"path"}, map[string]string{"delete": "1"}},
	"acl list":          {"GET", "/access/acl", nil, nil},
	"pool add":          {"POST", "/pools", []string{"poolid"}, nil},
	"pool delete":       {"DELETE", "/pools/{poolid}", []string{"poolid"}, nil},
	"pool list":         {"GET", "/pools", nil, nil},
}

func pveum(words []string, options map[string]string) (request, error) {
	for n := min(3, len(words)); n > 1; n-- {
		c, known := commands[strings.Join(words[:n], " ")]
		if !known {
			continue
		}
		args := words[n:]
		if len(args) != len(c.args) {
			return request{}, fmt.Errorf("pveum %s: %d arguments, want %s", strings.Join(words[:n], " "), len(args), strings.Join(c.args, " "))
		}
		r := request{method: c.method, path: c.path, params: options}
		for i, name := range c.args {
			if strings.Contains(r.path, "{"+name+"}") {
				r.path = strings.ReplaceAll(r.path, "{"+name+"}", url.PathEscape(args[i]))
			} else {
				r.params[name] = args[i]
			}
		}
		for key, value := range c.fixed {
			r.params[key] = value
		}
		return r, nil
	}
	return request{}, fmt.Errorf("pveum: unknown command %q", strings.Join(words, " "))
}

var verbs = map[string]string{"get": "GET", "ls": "GET", "create": "POST", "set": "PUT", "delete": "DELETE"}

func pvesh(words []string, options map[string]string) (request, error) {
	if len(words) != 2 || verbs[words[0]] == "" || !strings.HasPrefix(words[1], "/") {
		return request{}, fmt.Errorf("pvesh: want a verb and a path, got %q", words)
	}
	segments := strings.Split(words[1], "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return request{method: verbs[words[0]], path: strings.Join(segments, "/"), params: options}, nil
}

// send makes the call, and reports the server's message as the commands do.
func (c CLI) send(ctx context.Context, r request) (json.RawMessage, error) {
	form := url.Values{}
	for key, value := range r.params {
		form.Set(key, value)
	}
	target, body := c.Endpoint+"/api2/json"+r.path, io.Reader(nil)
	if slices.Contains([]string{"GET", "DELETE"}, r.method) {
		if len(form) > 0 {
			target += "?" + form.Encode()
		}
	} else {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "PVEAPIToken="+c.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data    json.RawMessage   `json:"data"`
		Message string            `json:"message"`
		Errors  map[string]string `json:"errors"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s %s: %s", r.method, r.path, resp.Status)
	}
	if resp.StatusCode != http.StatusOK {
		text := strings.TrimSpace(answer.Message)
		for name, problem := range answer.Errors {
			text += fmt.Sprintf("\n%s: %s", name, strings.TrimSpace(problem))
		}
		return nil, errors.New(text)
	}
	return answer.Data, nil
}
