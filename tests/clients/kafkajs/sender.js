// Sends what it reads, with kafkajs: a value a line, and prints a line for each once it is acknowledged.
//
//     node sender.js BOOTSTRAP TOPIC CLIENT_ID
//
// A request that is not answered within two seconds is tried again.
'use strict'

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, clientId] = process.argv.slice(2)
const kafka = new Kafka({
  clientId,
  brokers: bootstrap.split(','),
  logLevel: logLevel.NOTHING,
  requestTimeout: 2000,
  retry: { initialRetryTime: 100, retries: 20 },
})

async function main() {
  const producer = kafka.producer()
  await producer.connect()
  for await (const value of readline.createInterface({ input: process.stdin })) {
    await producer.send({ topic, messages: [{ value }] })
    console.log(value)
  }
  await producer.disconnect()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
