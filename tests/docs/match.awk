# match.awk WANTED GOT - ends with 0 if the texts are equal; a line `...` of
# WANTED stands for any number of lines, and blanks at ends do not count.
FNR == NR {
    sub(/ +$/, "")
    want[++n] = $0
    next
}
{
    sub(/ +$/, "")
    got[++m] = $0
}
END {
    i = 1
    for (j = 1; j <= m; j++) {
        if (i <= n && want[i] == "...") {
            skip = 1
            i++
        }
        if (i <= n && want[i] == got[j]) {
            skip = 0
            i++
        } else if (!skip) {
            exit 1
        }
    }
    while (i <= n && want[i] == "...") {
        i++
    }
    exit i <= n
}
