package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

var configPath = regexp.MustCompile(`^/nodes/([^/]+)/lxc/(\d+)/config$`)

// onNode makes what a note in a recording says was done on the node, as root and outside the API: options that only
// root can set, raw lines, the conversion to a template. What they were is read in the configuration that was recorded next.
func (r *replay) onNode(e *Exchange) error {
	m := configPath.FindStringSubmatch(e.Path)
	body, _ := e.Body.(map[string]any)
	data, ok := body["data"].(map[string]any)
	if m == nil || e.Method != http.MethodGet || !ok {
		return nil
	}
	vmid, err := strconv.Atoi(m[2])
	if err != nil {
		return fmt.Errorf("container of %s: %w", e.Path, err)
	}
	change := control.Guest{VMID: vmid, Set: map[string]string{}, Raw: [][2]string{}}
	for _, key := range []string{"dev0", "hookscript", "features", "mp0", "hostname"} {
		change.Set[key], _ = data[key].(string) // empty removes it
	}
	lines, _ := data["lxc"].([]any)
	for _, line := range lines {
		if pair, ok := line.([]any); ok && len(pair) == 2 {
			change.Raw = append(change.Raw, [2]string{fmt.Sprint(pair[0]), fmt.Sprint(pair[1])})
		}
	}
	if err := r.stat.control.ChangeGuest(r.ctx, change); err != nil {
		return err
	}
	if _, template := data["template"]; template {
		return r.convert("/nodes/" + m[1] + "/lxc/" + m[2])
	}
	return nil
}

// convert makes a template and waits until it is one.
func (r *replay) convert(path string) error {
	if got := r.send(&Exchange{Auth: "admin", Method: http.MethodPost, Path: path + "/template"}); got.status != http.StatusOK {
		return fmt.Errorf("%s/template: %d %s", path, got.status, got.reason)
	}
	for range 400 {
		got := r.send(&Exchange{Auth: "admin", Method: http.MethodGet, Path: path + "/config"})
		body, _ := got.body.(map[string]any)
		data, _ := body["data"].(map[string]any)
		if _, done := data["template"]; done {
			return nil
		}
		r.sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%s has not become a template", path)
}
