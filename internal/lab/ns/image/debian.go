//go:build linux

package image

import (
	"context"
	"os"
	"strings"
)

// debianArguments are mmdebstrap's, but for mode and target. Documentation and translations are left out, as in images of
// container engines. Host keys are made by each guest.
var debianArguments = []string{
	"--variant=minbase", "--format=tar",
	`--aptopt=Acquire::Languages "none"`, `--aptopt=APT::Install-Recommends "false"`, "--dpkgopt=force-unsafe-io",
	"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	"--dpkgopt=path-exclude=/usr/share/info/*",
	"--include=openssh-server,git,iproute2,procps,ca-certificates,curl,sudo,nftables,systemd,dbus",
	`--customize-hook=chroot "$1" useradd --create-home --shell /bin/bash agent`,
	`--customize-hook=rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id "$1"/etc/resolv.conf "$1"/etc/hostname`,
}

const debianSuite = "bookworm"

func debianText() string { return debianSuite + "\n" + strings.Join(debianArguments, "\n") }

func buildDebian(ctx context.Context, dir, tar string) error {
	mode := "--mode=unshare"
	if os.Geteuid() == 0 {
		mode = "--mode=root"
	}
	argv := append([]string{"mmdebstrap", "--quiet", mode}, debianArguments...)
	_, err := output(ctx, dir, append(argv, debianSuite, tar)...)
	return err
}
