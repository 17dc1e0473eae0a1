// A transactional producer of kafkajs, and what it says when it begins: what transactional.py is for Python's libraries.
//
//     node transactional.js BOOTSTRAP TOPIC
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'tx', brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
const producer = kafka.producer({ transactionalId: 'tx-kafkajs', idempotent: true, maxInFlightRequests: 1 })
const began = Date.now()

async function main() {
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: [{ value: 'value' }] })
  await transaction.commit()
}

function tell(error, retriable) {
  const seconds = (Date.now() - began) / 1000
  process.stdout.write(JSON.stringify({ seconds, error, fatal: error === null ? null : !retriable }) + '\n', () => process.exit(0))
}

main().then(() => tell(null), (error) => tell(`${error.name}: ${error.message}`, error.retriable))
