// One member of a group, with kafkajs, as a process that can be killed: what group_member.py is for Python's libraries.
//
//     node member.js BOOTSTRAP GROUP TOPIC
//
// Prints a JSON object a line: `partitions_assigned` with all that it has, and `record_data` for each record, after which it
// commits. SIGTERM makes it leave its group and end.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, groupId, topic] = process.argv.slice(2)
const tell = (event) => process.stdout.write(JSON.stringify(event) + '\n')

const kafka = new Kafka({ clientId: 'member', brokers: bootstrap.split(','), logLevel: logLevel.WARN })
const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500 })

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  const partitions = (payload.memberAssignment[topic] || []).map((partition) => ({ partition }))
  tell({ name: 'partitions_assigned', partitions })
})

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      tell({ name: 'record_data', partition, offset: Number(message.offset) })
      await consumer.commitOffsets([{ topic, partition, offset: String(BigInt(message.offset) + 1n) }])
    },
  })
}

process.on('SIGTERM', () => consumer.disconnect().then(() => process.exit(0)))

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
