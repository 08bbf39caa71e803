# shellcheck shell=sh disable=SC2016
# Stands in for an agent: it reads its task from standard input, as `command` of sandbox_agent_run does. It mends one thing at a
# time, the one that its task complains about last; so the tests send it back once.
task=$(cat)

case $task in
*"FAIL: sub"*) sed -i 's/(\$2 - \$1)/($1 - $2)/' calc.sh ;;
*) sed -i '/^add/s/ - / + /' calc.sh ;;
esac

mkdir -p build
echo "add and sub were wrong" > build/summary.txt
echo "changed: calc.sh"
