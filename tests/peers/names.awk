# For check-names: names and parameters on standard input, against the table.
function fail(text) { print text; bad++ }

# The names of the parameters of a signature, into words[1..]; their number.
function parameters(text, words,    i, c, depth, quote, word, n)
{
    n = depth = 0
    text = text ","
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\"") quote = !quote
        if (quote) continue
        if (c ~ /[(\[]/) depth++
        if (c ~ /[)\]]/) depth--
        if (c == "," && !depth) {
            gsub(/^[ *]+/, "", word)
            sub(/[ :=].*/, "", word)
            if (word != "") words[++n] = word
            word = ""
        } else word = word c
    }
    return n
}

# Does a row speak of parameter `word`: taken (theirs=word), or its own?
function spoken(taken, own, word,    i, n, part, ours, k, m)
{
    n = split(taken, part, " ")
    for (i = 1; i <= n; i++) {
        sub(/^[^=]*=/, "", part[i])
        m = split(part[i], ours, ",")
        for (k = 1; k <= m; k++) if (ours[k] == word) return 1
    }
    n = split(own, part, " ")
    for (i = 1; i <= n; i++) if (part[i] == word) return 1
    return 0
}

BEGIN {
    while ((getline line < table) > 0) {
        at++
        if (line ~ /^#/) continue
        if (split(line, f, "\t") != 6 || f[2] == "")
            fail(table ":" at ": six columns, the second not empty")
        if (f[1] in taken) fail(table ":" at ": `" f[1] "` twice")
        taken[f[1]] = f[3]; own[f[1]] = f[5]; peer[f[1]] = f[2]
        if (f[2] == "-" && f[6] == "" && f[1] != "*")
            fail(table ":" at ": `" f[1] "` has no peer and no word about it")
        n = split(f[4], part, "; *")
        for (i = 1; i <= n; i++)
            if (part[i] !~ /^[A-Za-z_0-9]+: ./)
                fail(table ":" at ": `" part[i] "` gives no reason")
    }
}
{
    seen++
    if (!($1 in taken)) {
        fail("names.tsv has no row for `" $1 "`")
        next
    }
    n = parameters($2, words)
    for (i = 1; i <= n; i++)
        if (words[i] != "" && $2 !~ /^[=@]/ &&
            !spoken(taken[$1], own[$1], words[i]))
            fail("names.tsv: `" $1 "` does not speak of `" words[i] "`")
}
END {
    if (seen < 100) fail("only " seen " names: is the list of names whole?")
    print "check-names: " seen + 0 " names, " bad + 0 " failures"
    exit bad > 0
}
