# strip.awk - functions that take comments and strings out of C, by lines.
#
# code(line) is the line with comments replaced by a blank and the text of
# strings and character constants removed; comment is then what the line's
# comments said.  `inside` carries an open comment over lines: set it to 0 at
# the start of a file.
function code(line,   out, c, two) {
    out = ""
    comment = ""
    while (line != "") {
        if (inside) {
            c = index(line, "*/")
            if (!c) {
                comment = comment " " line
                return out
            }
            comment = comment " " substr(line, 1, c - 1)
            line = substr(line, c + 2)
            inside = 0
            out = out " "
            continue
        }
        two = substr(line, 1, 2)
        c = substr(line, 1, 1)
        if (two == "//") {
            comment = comment " " substr(line, 3)
            return out
        } else if (two == "/*") {
            inside = 1
            line = substr(line, 3)
        } else if (c == "\"" || c == "'") {
            line = literal(line, c)
            out = out c c
        } else {
            out = out c
            line = substr(line, 2)
        }
    }
    return out
}

# What follows the literal that `line` starts with.
function literal(line, quote,   i, c) {
    for (i = 2; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "\\") {
            i++
        } else if (c == quote) {
            break
        }
    }
    return substr(line, i + 1)
}
