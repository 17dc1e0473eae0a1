// A suite in JavaScript: node's own test runner, kafkajs, and a cluster that it breaks with `tanist`.
'use strict'

const assert = require('node:assert')
const { execFileSync } = require('node:child_process')
const { mkdtempSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { after, afterEach, before, test } = require('node:test')
const { Kafka, logLevel } = require('kafkajs')

process.env.TANIST_DATA = join(mkdtempSync(join(tmpdir(), 'orders-')), 'cluster')
const tanist = (...words) => JSON.parse(execFileSync('tanist', [...words, '--json'], { encoding: 'utf8' }))
const fault = (id) => tanist('faults', 'list').faults.find((each) => each.rule === id)

let producer

before(async () => {
  const { bootstrap } = tanist('up', '--detach', '--port', '0')
  tanist('topics', 'create', 'orders', '--partitions', '1', '--replication-factor', '3')
  const kafka = new Kafka({ clientId: 'shop', brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
  producer = kafka.producer()
  await producer.connect()
})
afterEach(() => tanist('heal'))
after(async () => {
  await producer.disconnect()
  tanist('down', '--wipe', '--yes')
})

test('an order is sent again when too few replicas are in sync', async () => {
  const { rule } = tanist('faults', 'inject', 'error', 'PRODUCE', 'NOT_ENOUGH_REPLICAS', '--once')
  await producer.send({ topic: 'orders', messages: [{ value: 'order 1' }] })
  assert.strictEqual(fault(rule).hits, 1)
})

test('an order survives the death of a broker', async () => {
  tanist('crash', '1')
  await producer.send({ topic: 'orders', messages: [{ value: 'order 2' }] })
  tanist('start', '1')
  tanist('wait', '--topic', 'orders', '--isr', '3')
})
