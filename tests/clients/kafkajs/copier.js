// A member of a group that copies one topic to another exactly once, with kafkajs: what copier.py is for Python's libraries.
//
//     node copier.js BOOTSTRAP SOURCE TARGET GROUP COUNT
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, source, target, groupId, count] = process.argv.slice(2)
const BATCH = 10
const kafka = new Kafka({ clientId: 'copier', brokers: bootstrap.split(','), logLevel: logLevel.ERROR })
const consumer = kafka.consumer({ groupId })
const producer = kafka.producer({ transactionalId: groupId, idempotent: true, maxInFlightRequests: 1 })
const counts = { committed: 0, aborted: 0 }
let number = 0
let left = Number(count)

async function copy(partition, messages) {
  const transaction = await producer.transaction()
  await transaction.send({ topic: target, messages: messages.map(({ value }) => ({ value, partition })) })
  const offset = String(BigInt(messages[messages.length - 1].offset) + 1n)
  await transaction.sendOffsets({
    consumerGroupId: groupId,
    topics: [{ topic: source, partitions: [{ partition, offset }] }],
  })
  number += 1
  if (number % 3 === 0) {
    await transaction.abort()
    counts.aborted += 1
    return false
  }
  await transaction.commit()
  counts.committed += 1
  left -= messages.length
  return true
}

async function main() {
  await producer.connect()
  await consumer.connect()
  await consumer.subscribe({ topics: [source], fromBeginning: true })
  const ended = new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer
      .run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
          for (let first = 0; first < batch.messages.length && isRunning() && !isStale(); first += BATCH) {
            const messages = batch.messages.slice(first, first + BATCH)
            while (!(await copy(batch.partition, messages))) await heartbeat() // the records are at hand
            resolveOffset(messages[messages.length - 1].offset)
            await heartbeat()
          }
          if (left <= 0) resolve()
        },
      })
      .catch(reject)
  })
  await ended
  await consumer.disconnect()
  await producer.disconnect()
}

main().then(
  () => process.stdout.write(JSON.stringify(counts) + '\n', () => process.exit(0)),
  (error) => {
    console.error(error)
    process.exit(1)
  }
)
