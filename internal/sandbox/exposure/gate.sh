#!/bin/sh
# What the login sandbox-node may do; its key's forced command. The provider that logs in as root runs the same program.
#   expose VMID PORT LISTEN_ADDRESS LISTEN_PORT TARGET_ADDRESS CLAIM VIA   a port of a sandbox on this node; VIA is direct or tailscale
#   unexpose VMID PORT CLAIM                                               away with it
#   list                                                                   one line each: name listen target state claim via
#   show VMID PORT                                                         the same for one, and what its target answers
#   ports                                                                  the addresses and ports that are listened on
#   source TARGET_ADDRESS                                                  the address from which the node reaches a sandbox
#   tailnet                                                                the node's name in its tailnet
# It ends with 64 for a request that is none, 66 for what isn't there, 69 when systemd or Tailscale refuse, 73 for what is
# another sandbox's, 75 for a port that is taken.
set -eu
prefix=@PREFIX@
if [ -n "$prefix" ]; then
  units="${HOME:?}/.config/systemd/user" scope=--user
  XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
  export XDG_RUNTIME_DIR
else
  units=/etc/systemd/system scope=--system
fi

end() { code=$1; shift; echo "sandbox-node: $*" >&2; exit "$code"; }
refuse() { end 64 "$@"; }
number() { # value least most name
  case $1 in '' | *[!0-9]* | 0* | ??????????*) refuse "$4 must be a number" ;; esac
  if [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; then refuse "$4 must lie between $2 and $3"; fi
}
ipv4() { # value name
  case $1 in *[!0-9.]* | *..* | .* | *. | *.*.*.*.*) refuse "$2 must be an IPv4 address" ;; *.*.*.*) ;; *) refuse "$2 must be an IPv4 address" ;; esac
  rest=$1.
  while [ -n "$rest" ]; do
    octet=${rest%%.*} rest=${rest#*.}
    case $octet in ????* | '' | 0?*) refuse "$2 must be an IPv4 address" ;; esac
    if [ "$octet" -gt 255 ]; then refuse "$2 must be an IPv4 address"; fi
  done
}
claim() {
  case $1 in *[!a-z2-7]*) refuse "the claim must be 26 characters of a-z and 2-7" ;; esac
  [ "${#1}" -eq 26 ] || refuse "the claim must be 26 characters of a-z and 2-7"
}
ask() { systemctl "$scope" "$@"; }
field() { sed -n "s/^$2=//p" "$units/$1.socket" 2>/dev/null | head -n 1; }
target() { sed -n 's/.*socket-proxyd //p' "$units/$1.service" 2>/dev/null | head -n 1; }
listening() { ss -Hltn | while read -r _ _ _ local _; do echo "$local"; done; }
published() { # name
  served=$(field "$1" ListenStream) served=${served##*:}
  tailscale serve status --json 2>/dev/null | grep -q "\"$served\""
}
line() { # name
  state=$(ask is-active "$1.socket" 2>/dev/null || true) via=$(field "$1" Via)
  if [ "$state" = active ] && [ "$via" = tailscale ] && ! published "$1"; then state=unpublished; fi
  t=$(target "$1") c=$(field "$1" Claim)
  printf '%s %s %s %s %s %s' "$1" "$(field "$1" ListenStream)" "${t:--}" "${state:-unknown}" "${c:--}" "${via:--}"
}
remove() { # name
  if [ "$(field "$1" Via)" = tailscale ]; then
    served=$(field "$1" ListenStream)
    tailscale serve --tcp="${served##*:}" off >/dev/null 2>&1 || true
  fi
  ask disable --quiet --now "$1.socket" 2>/dev/null || true
  ask stop "$1.service" 2>/dev/null || true
  rm -f "$units/$1.socket" "$units/$1.service"
  ask daemon-reload
}
owned() { # name claim
  c=$(field "$1" Claim)
  [ "${c:-$2}" = "$2" ] || end 73 "$1 is another sandbox's"
}
taken() { # listen name: by whom an address and port are taken, if they are
  for other in "$units"/sbx-*.socket; do
    [ -e "$other" ] || continue
    other=${other##*/} other=${other%.socket}
    if [ "$other" != "$2" ] && [ "$(field "$other" ListenStream)" = "$1" ]; then echo "$other"; return; fi
  done
  if [ "$(field "$2" ListenStream)" = "$1" ] && [ "$(ask is-active "$2.socket" 2>/dev/null)" = active ]; then return; fi
  listening | while read -r local; do
    case $local in "$1" | "0.0.0.0:${1##*:}" | "*:${1##*:}" | "[::]:${1##*:}") echo "another program ($local)"; break ;; esac
  done
}

# The request is split into words and nothing else: no quotes, no patterns, no second command.
set -f
case ${SSH_ORIGINAL_COMMAND:-} in *[!A-Za-z0-9.\ -]*) refuse "unexpected characters" ;; esac
# shellcheck disable=SC2086 # to be split
set -- ${SSH_ORIGINAL_COMMAND:-}
case "${1:-} $#" in
  "expose 8")
    number "$2" 100 999999999 "the id"
    number "$3" 1 65535 "the port"
    ipv4 "$4" "the address to listen on"
    number "$5" 1 65535 "the port to listen on"
    ipv4 "$6" "the sandbox's address"
    claim "$7"
    case $8 in direct) ;; tailscale) case $4 in 127.*) ;; *) refuse "what Tailscale publishes listens on 127.0.0.1" ;; esac ;; *) refuse "the way must be direct or tailscale" ;; esac
    sandboxed=
    if [ -n "$prefix" ]; then
      [ "$5" -ge 1024 ] || refuse "the port to listen on must lie between 1024 and 65535"
      case $6 in "$prefix".*) ;; *) refuse "$6 is no sandbox's address" ;; esac
      case $4 in "$prefix".*) refuse "sandboxes must not reach each other's exposures" ;; 0.*) refuse "not on every address" ;; esac
    else
      sandboxed='DynamicUser=yes\nNoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateDevices=yes\nCapabilityBoundingSet=\n'
    fi
    name=sbx-$2-$3
    set +f
    owned "$name" "$7"
    by=$(taken "$4:$5" "$name")
    [ -z "$by" ] || end 75 "$4:$5 is taken by $by"
    mkdir -p "$units"
    if [ -e "$units/$name.socket" ]; then remove "$name"; fi
    printf '[Unit]\nDescription=Port %s of sandbox %s\n\n[Socket]\nListenStream=%s:%s\n\n[Install]\nWantedBy=sockets.target\n\n[X-Sandbox]\nClaim=%s\nVia=%s\n' \
      "$3" "$2" "$4" "$5" "$7" "$8" >"$units/$name.socket"
    # shellcheck disable=SC2059 # its line ends
    printf "[Unit]\nDescription=Port $3 of sandbox $2\nRequires=$name.socket\nAfter=$name.socket\n\n[Service]\n${sandboxed}ExecStart=/lib/systemd/systemd-socket-proxyd %s:%s\n" "$6" "$3" >"$units/$name.service"
    ask daemon-reload
    if ! said=$(ask enable --quiet --now "$name.socket" 2>&1); then
      by=$(taken "$4:$5" "$name")
      remove "$name"
      [ -z "$by" ] || end 75 "$4:$5 is taken by $by"
      end 69 "systemd doesn't listen on $4:$5: $said"
    fi
    if [ "$8" = tailscale ] && ! said=$(tailscale serve --bg --tcp="$5" "tcp://127.0.0.1:$5" 2>&1); then
      remove "$name"
      end 69 "tailscale doesn't serve port $5: $said"
    fi
    line "$name"
    echo
    ;;
  "unexpose 4")
    number "$2" 100 999999999 "the id"
    number "$3" 1 65535 "the port"
    claim "$4"
    name=sbx-$2-$3
    if [ -e "$units/$name.socket" ] || [ -e "$units/$name.service" ]; then
      owned "$name" "$4"
      remove "$name"
    fi
    ;;
  "list 1")
    set +f
    for socket in "$units"/sbx-*.socket; do
      [ -e "$socket" ] || continue
      name=${socket##*/}
      line "${name%.socket}"
      echo
    done
    ;;
  "show 3")
    number "$2" 100 999999999 "the id"
    number "$3" 1 65535 "the port"
    name=sbx-$2-$3
    [ -e "$units/$name.socket" ] || end 66 "there is no $name"
    line "$name"
    t=$(target "$name") answer=0
    # shellcheck disable=SC2016 # bash's to expand
    timeout 3 bash -c ': <"/dev/tcp/${1%:*}/${1##*:}"' probe "$t" 2>/dev/null || answer=$?
    case $answer in 0) echo " open" ;; 124) echo " silent" ;; *) echo " refused" ;; esac
    ;;
  "ports 1") listening ;;
  "source 2")
    ipv4 "$2" "the sandbox's address"
    case $2 in "$prefix".* | "${prefix:-$2}") ;; *) refuse "$2 is no sandbox's address" ;; esac
    ip -4 route get "$2" | sed -n 's/.* src \([0-9.]*\).*/\1/p' | head -n 1
    ;;
  "tailnet 1")
    host=$(tailscale status --json --peers=false 2>/dev/null | sed -n 's/.*"DNSName": *"\([A-Za-z0-9.-]*[A-Za-z0-9]\)\.*".*/\1/p' | head -n 1)
    [ -n "$host" ] || end 69 "Tailscale isn't up on this node"
    echo "$host"
    ;;
  *) refuse "this login knows expose, unexpose, list, show, ports, source and tailnet" ;;
esac
