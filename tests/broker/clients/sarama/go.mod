module sarama

go 1.25

require github.com/IBM/sarama v1.46.3
