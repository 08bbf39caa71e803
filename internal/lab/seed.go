package lab

import (
	"context"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// seed fills a new cluster with what a newcomer needs: an administrator with a token, a pool, a template file and a
// template that trusts the lab's key. A careless template was booted before it was converted, and so has host keys.
func (l *Lab) seed(ctx context.Context, d *server.Seeder, o Options) error {
	d.User(adminUser, l.keys.Password)
	d.Password("root@pam", l.keys.Password)
	d.TokenWithSecret(adminUser, "lab", l.keys.Token, false)
	d.Grant("/", adminUser, "Administrator")
	d.Pool(Pool)
	d.FirewallOn()
	d.TemplateFile(TemplateFile, 55633611)
	for _, name := range o.TemplateFiles {
		d.TemplateFile("local:vztmpl/"+name, 129710398)
	}
	d.Crowd(d.Nodes()[0], CrowdFirst, o.Crowd)
	err := d.Guest(ctx, d.Nodes()[0], TemplateID, templateConfig(), engine.RootSpec{Image: o.Image, AuthorizedKeys: []string{l.keys.authorized()}})
	if err != nil || !o.SharedHostKeys {
		return err
	}
	if err := l.engine.Start(ctx, TemplateID); err != nil {
		return err
	}
	return l.engine.Kill(ctx, TemplateID)
}

// templateConfig is the template as its configuration file has it.
func templateConfig() map[string]string {
	return map[string]string{
		"arch": "amd64", "cores": "1", "features": "nesting=1", "hostname": "mini-tmpl", "memory": "128", "swap": "0",
		"net0":   "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:90:00:00,ip=dhcp,type=veth",
		"ostype": "debian", "rootfs": "local-btrfs:9000/base-9000-disk-0.raw,size=1G", "template": "1", "unprivileged": "1",
	}
}

// indent puts a margin before every line.
func indent(text, margin string) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(margin + line + "\n")
	}
	return b.String()
}
