. /etc/os-release
codename=${VERSION_CODENAME:-}
[ -n "$codename" ] || die "/etc/os-release has no VERSION_CODENAME: nobody knows which packages belong here"

# sources: "SUITE ADDRESS FILE" of every source.
sources() {
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$file" ] || continue
    awk -v file="$file" '$1 == "deb" {
      i = 2
      if ($i ~ /^\[/) { while ($i !~ /\]$/ && i < NF) i++; i++ }
      print $(i + 1), $i, file
    }' "$file"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk -v file="$file" '
      function flush(  i, j) { if (enabled) for (i in u) for (j in s) print s[j], u[i], file; split("", u); split("", s); enabled = 1 }
      BEGIN { enabled = 1 }
      /^[ \t]*$/ { flush() }
      tolower($1) == "enabled:" && tolower($2) == "no" { enabled = 0 }
      tolower($1) == "uris:" { for (n = 2; n <= NF; n++) u[n] = $n }
      tolower($1) == "suites:" { for (n = 2; n <= NF; n++) s[n] = $n }
      END { flush() }' "$file"
  done
}

found=
while read -r suite address file; do
  [ -n "$suite" ] || continue
  base=${suite%%/*}
  base=${base%%-*}
  address=${address%/}
  if [ "$base" = "$codename" ]; then
    found=1
    continue
  fi
  case ${address##*/} in
  debian | debian-security | ubuntu | ubuntu-ports)
    die "the source $suite in $file is not of this release, $codename: with it, packages stay as they are and nothing says so. Name $codename there, or take the source out"
    ;;
  esac
done <<SOURCES
$(sources)
SOURCES
[ -n "$found" ] || die "no package source is of this release, $codename: see /etc/apt/sources.list and /etc/apt/sources.list.d"

# Services don't start while packages are installed where no systemd runs: their first start is a clone's.
if ! running && [ ! -e /usr/sbin/policy-rc.d ]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
fi

had_lists=$(find /var/lib/apt/lists -type f -size +0 ! -name lock -print -quit 2>/dev/null || :)
apt() {
  apt-get -q -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
    -o Dpkg::Options::=--log=/dev/null -o APT::Get::Assume-Yes=true \
    -o APT::Install-Recommends=false -o Dir::Log::Terminal= -o Dir::Log::History= -o Dir::Log::Planner= -o Acquire::Retries=3 -o APT::Update::Error-Mode=any "$@"
}
# packages: every package with its version, to see whether anything changed.
packages() { dpkg-query -W -f '${Package}:${Architecture} ${Version} ${db:Status-Status}\n' | sort; }
before=$(packages)

if [ -n "$(dpkg --audit)" ]; then
  dpkg --force-confdef --force-confold --log=/dev/null --configure -a >&2
fi
# Any source that can't be read is an error here; to apt-get it is a warning, and then nothing is there to upgrade.
apt update >&2 || die "the package lists can't be read, so nobody knows what is to be upgraded"
apt dist-upgrade >&2

want=
for p in openssh-server nftables util-linux procps ca-certificates git; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || want="$want $p"
done
# A container that is cloned boots an init; a container image has none.
[ -e /sbin/init ] || want="$want systemd-sysv"
[ -z "$want" ] || apt install $want >&2

gone=
for p in postfix exim4 exim4-base exim4-config exim4-daemon-light sendmail-bin telnetd rsh-server rpcbind avahi-daemon cups-daemon samba vsftpd snmpd xinetd openbsd-inetd unattended-upgrades; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] && gone="$gone $p"
done
[ -z "$gone" ] || apt purge $gone >&2
apt autoremove --purge >&2

broken=$(dpkg --audit)
[ -z "$broken" ] || die "packages are left half installed: $broken"
left=$(apt -s dist-upgrade 2>/dev/null | sed -n 's/^Inst \([^ ]*\).*/\1/p' | tr '\n' ' ')
[ -z "$left" ] || die "packages can still be upgraded after the upgrade: ${left}(held back, or pinned: see apt-mark showhold and /etc/apt/preferences.d)"

apt clean
rm -f /var/cache/apt/*.bin /var/log/apt/eipp.log.xz
[ -n "$had_lists" ] || find /var/lib/apt/lists -type f -delete
[ "$before" = "$(packages)" ] || changed packages
