# The public names of a file of the library: "space.name TAB parameters".
/^(module|fn|record) [A-Za-z]/ && !open { text = ""; open = 1 }
open {
    text = text " " $0
    if (text ~ /:[ ]*$/ || text ~ /\) = / || text ~ /\)[ ]*->/) {
        open = 0
        name = text
        sub(/^ *(module|fn|record) /, "", name)
        sub(/[^A-Za-z0-9_].*/, "", name)
        inside = text
        if (text !~ /\(/) {
            inside = ""
        }
        sub(/^[^(]*\(/, "", inside)
        sub(/\)( *->.*| = .*|:? *)$/, "", inside)
        print space "." name "\t" inside
    }
}
