# shellcheck shell=sh source=/dev/null
. ./calc.sh

failed=0
check() {
  if [ "$2" != "$3" ]; then
    echo "FAIL: $1 is $2, not $3"
    failed=1
  fi
}

check add "$(add 2 3)" 5
check sub "$(sub 5 3)" 2
check mul "$(mul 2 3)" 6
exit $failed
