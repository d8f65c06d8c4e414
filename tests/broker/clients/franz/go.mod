module franz

go 1.25

require github.com/twmb/franz-go v1.20.4
