# split.awk - cuts a page into programs: awk -v dir=DIR -f split.awk PAGE
#
# A block ```tl is a program, ```tl more goes on with the one before, and
# ```tl error must fail.  A block ```output behind it is what it prints.
# ```tl setup is put before every code of the second column of tables whose
# head says `tlang`; all code spans of a cell are lines of one program.
# Writes DIR/NNN.tl, DIR/NNN.want, and to DIR/list: NNN KIND LINE.

function open_program(kind)
{
    number = sprintf("%03d", ++count)
    name = dir "/" number ".tl"
    printf "" > name
    print number, kind, FNR > (dir "/list")
    return name
}

/^```/ && inside == "" {
    inside = "other"
    if ($0 == "```tl setup") {
        inside = "setup"
    } else if ($1 == "```tl") {
        inside = "tl"
        file = open_program($2 == "" ? "alone" : $2)
        kept = $2 != "error"
        if ($2 == "more") {
            printf "%s", chain > file
        } else if (kept) {
            chain = ""
        }
    } else if ($0 == "```output") {
        inside = "output"
        want = dir "/" number ".want"
        printf "" > want
    }
    next
}
/^```$/ {
    inside = ""
    next
}
inside == "tl" {
    print > file
    if (kept) {
        chain = chain $0 "\n"
    }
}
inside == "output" {
    print > want
}
inside == "setup" {
    setup = setup $0 "\n"
}
inside == "" && /^\|/ {
    gsub(/\\\|/, "\001")
    n = split($0, cell, "|")
    if (cell[3] ~ /^ *tlang *$/) {
        table = 1
        next
    }
    if (!table || cell[3] !~ /`/) {
        next
    }
    file = open_program("row")
    printf "%s", setup > file
    n = split(cell[3], part, "`")
    for (i = 2; i <= n; i += 2) {
        gsub(/\001/, "|", part[i])
        print part[i] > file
    }
    next
}
inside == "" {
    table = 0
}
