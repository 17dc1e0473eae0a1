// Steps with kafkajs. See tests/clients/step_programs.py.
'use strict'

const fs = require('fs')
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const STEP_MS = 20000

function client(settings) {
  const ssl = { ca: [fs.readFileSync(settings.ca)] }
  if (settings.certificate) {
    ssl.key = fs.readFileSync(settings.certificate)
    ssl.cert = fs.readFileSync(settings.certificate)
  }
  const { mechanism, username, password, token } = settings
  let sasl
  if (token) sasl = { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: token }) }
  else if (mechanism) sasl = { mechanism: mechanism.toLowerCase(), username, password }
  const retry = { initialRetryTime: 100, retries: 2 }
  return new Kafka({ brokers: [settings.bootstrap], ssl, sasl, retry, logLevel: logLevel.NOTHING })
}

async function create(kafka, { topic }) {
  const admin = kafka.admin()
  try {
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] })
  } finally {
    await admin.disconnect()
  }
}

async function produce(kafka, { topic, values }) {
  const producer = kafka.producer()
  try {
    await producer.connect()
    await producer.send({ topic, messages: values.map((value) => ({ value })) })
  } finally {
    await producer.disconnect()
  }
}

async function transaction(kafka, { topic, id, values }) {
  const producer = kafka.producer({ transactionalId: id, idempotent: true, maxInFlightRequests: 1 })
  try {
    await producer.connect()
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: values.map((value) => ({ value })) })
    await transaction.commit()
  } finally {
    await producer.disconnect()
  }
}

async function consume(kafka, { topic, group, count }) {
  const consumer = kafka.consumer({ groupId: group, retry: { retries: 0 } })
  const found = []
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      consumer.run({
        eachMessage: async ({ message }) => {
          if (found.push(message.value.toString()) === count) resolve()
        },
      })
    })
  } finally {
    await consumer.disconnect()
  }
  return found
}

const DO = { create, produce, transaction, consume }

function limited(work) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no time left')), STEP_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

// kafkajs wraps what went wrong; of several topics it says so in a list.
function told(error) {
  const all = [error, ...(error.errors || [])]
  const causes = error.cause ? [told(error.cause)] : []
  return [...all.map((each) => [each.name, each.type, each.message].filter(Boolean).join(': ')), ...causes].join('\n')
}

async function outcome(settings, [name, step]) {
  try {
    return { value: (await limited(DO[name](client(settings), step))) ?? null }
  } catch (error) {
    return { error: told(error) }
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const settings = JSON.parse(line)
    const outcomes = []
    for (const step of settings.steps) outcomes.push(await outcome(settings, step))
    console.log(JSON.stringify(outcomes))
  }
}

main()
