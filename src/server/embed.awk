# Turns text files into initializers of an array of C strings: one a line, NULL behind each file.
FNR == 1 && NR > 1 { print "NULL," }
{ gsub(/\\/, "\\\\\\\\"); gsub(/"/, "\\\""); print "\"" $0 "\\n\"," }
END { print "NULL," }
