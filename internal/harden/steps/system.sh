[ "$(id -u)" = 0 ] || die "hardening needs root, and this is $(id -un)"
[ -r /etc/os-release ] || die "there is no /etc/os-release: only Debian and Ubuntu, and what is made from them, can be hardened"
. /etc/os-release
case " ${ID:-} ${ID_LIKE:-} " in
*" debian "* | *" ubuntu "*) ;;
*) die "${PRETTY_NAME:-this system} is neither Debian nor Ubuntu, nor made from them" ;;
esac
for need in apt-get dpkg find stat cmp awk sed mktemp useradd; do
  command -v "$need" >/dev/null || die "$need is missing"
done
