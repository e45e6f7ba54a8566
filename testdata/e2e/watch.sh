# Runs a watch, makes changes one after another, and prints what the watch showed:
#   sh watch.sh WATCH CHANGE...
# Each change is made when one more line is there, so no change comes before the
# watch has begun. What comes too often shows among the lines of later changes.

shown=$KUBECONFIG.watch
# It is there before the watch is started, which may take its time.
: >"$shown"
$1 >>"$shown" 2>&1 &
watch=$!
shift

# Waits for so many lines, at most a minute.
lines() {
    tries=0
    until [ "$(wc -l <"$shown")" -ge "$1" ]; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ]; then
            echo "the watch did not show $1 lines"
            break
        fi
        sleep 0.1
    done
}

expected=1
for change; do
    lines $expected
    sh -c "$change" >/dev/null
    expected=$((expected + 1))
done
lines $expected
kill $watch
cat "$shown"
