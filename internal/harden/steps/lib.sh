# What every step of hardening begins with. A step says what it changed, and changes nothing that is right already.
set -eu
umask 022
LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL DEBIAN_FRONTEND PATH

changed() { printf 'changed: %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# put FILE MODE: a file of root's with what stands on standard input, replaced as a whole.
put() {
  mkdir -p "${1%/*}"
  put_new=$(mktemp "${1%/*}/.sandbox-XXXXXX")
  cat >"$put_new"
  chmod "$2" "$put_new"
  if [ -f "$1" ] && [ ! -L "$1" ] && cmp -s "$put_new" "$1" && [ "$(stat -c '%a %u %g' "$1")" = "${2#0} 0 0" ]; then
    rm -f "$put_new"
  else
    mv -f "$put_new" "$1"
    changed "$1"
  fi
}

# link TARGET NAME
link() {
  if [ "$(readlink "$2" 2>/dev/null || :)" != "$1" ]; then
    mkdir -p "${2%/*}"
    rm -rf "$2"
    ln -s "$1" "$2"
    changed "$2 -> $1"
  fi
}

remove() {
  for remove_it; do
    if [ -e "$remove_it" ] || [ -L "$remove_it" ]; then
      rm -rf -- "$remove_it"
      changed "$remove_it is gone"
    fi
  done
}

# own NAME UID GID MODE
own() {
  if [ "$(stat -c '%u %g %a' "$1")" != "$2 $3 ${4#0}" ]; then
    chown "$2:$3" "$1"
    chmod "$4" "$1"
    changed "$1 is $2:$3 $4"
  fi
}

# empty FOLDER: everything in it goes.
empty() {
  [ -d "$1" ] && [ ! -L "$1" ] || return 0
  if [ -n "$(find "$1" -xdev -mindepth 1 -print -quit)" ]; then
    find "$1" -xdev -mindepth 1 -delete
    changed "$1 is empty"
  fi
}

has_unit() { [ -e "/usr/lib/systemd/system/$1" ] || [ -e "/lib/systemd/system/$1" ] || [ -e "/etc/systemd/system/$1" ]; }
mask() { for mask_it; do link /dev/null "/etc/systemd/system/$mask_it"; done; }

# pull_in UNIT TARGET enables a unit, by the links that systemctl would make: there may be no systemd to ask.
pull_in() {
  pull_in_file=/etc/systemd/system/$1
  [ -e "$pull_in_file" ] || pull_in_file=/usr/lib/systemd/system/$1
  [ -e "$pull_in_file" ] || pull_in_file=/lib/systemd/system/$1
  if [ ! -e "/etc/systemd/system/$2.wants/$1" ]; then
    link "$pull_in_file" "/etc/systemd/system/$2.wants/$1"
  fi
}

# running: whether systemd is the init of the running system.
running() { [ -d /run/systemd/system ]; }
