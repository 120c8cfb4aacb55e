import { ReplyError } from 'ioredis';
import test from 'ava';
import mongoose from 'mongoose';
import { AppError } from '../../../shared/contract/errors.ts';
import { Faults, isTemporaryFailure } from '../../../workers/reporting/faults.ts';
import { captureLog } from '../../support/captured-log.ts';

const { MongoNetworkError, MongoServerError } = mongoose.mongo;

const redisReply = (message: string): Error => new ReplyError(message);

test('errors of an unavailable store, of any kind, are temporary', (t) => {
  for (const error of [
    new Error('Connection is closed.'),
    new Error('connect ECONNREFUSED 127.0.0.1:6379'),
    redisReply('LOADING Redis is loading the dataset in memory'),
    redisReply('MISCONF Errors writing to the AOF file'),
    new MongoNetworkError('connection 1 closed'),
    new MongoServerError({ message: 'not primary', code: 10_107 }),
    // Two workers inserted the same document at the same time.
    new MongoServerError({ message: 'E11000 duplicate key error', code: 11_000 }),
    new AppError('service_unavailable', { cause: new Error('Connection is closed.') }),
    new AppError('service_unavailable'),
  ])
    t.true(isTemporaryFailure(error), error.message);
});

test('a missing permission, an unknown command and a bug in the program are not temporary', (t) => {
  for (const error of [
    redisReply("NOPERM User gateway has no permissions to run the 'blmpop' command"),
    redisReply("ERR unknown command 'BLMPOP', with args beginning with: "),
    redisReply('WRONGTYPE Operation against a key holding the wrong kind of value'),
    new MongoServerError({ message: 'not authorized on test to execute command { insert: 1 }', code: 13 }),
    new TypeError('Cannot read properties of undefined'),
    new mongoose.mongo.BSON.BSONError('key a b must not contain null bytes'),
    new AppError('internal_error'),
    new AppError('service_unavailable', { cause: redisReply('WRONGPASS invalid username-password pair') }),
  ])
    t.false(isTemporaryFailure(error), error.message);
});

test('a failure is logged once until it is resolved, with what to do, and an outage is not logged', (t) => {
  const { log, lines } = captureLog();
  const faults = new Faults(log);
  const messages = (): unknown[] => lines.map(({ level, msg }) => [level, msg]);
  faults.note('taking chats', new Error('Connection is closed.'));
  faults.clear('taking chats');
  t.is(faults.count, 0);
  t.deepEqual(messages(), []);
  const unknown = redisReply("ERR unknown command 'BLMPOP', with args beginning with: ");
  for (let times = 0; times < 3; times++) faults.note('taking chats', unknown);
  faults.note('looking after jobs', new TypeError('no list'));
  t.is(faults.count, 2);
  faults.clear('taking chats');
  t.is(faults.count, 1);
  t.deepEqual(messages(), [
    [
      50,
      'taking chats fails until this is fixed: Redis does not know a command that the gateway needs; use Redis ' +
        `7.0 or later, without renamed commands: ${unknown.message}`,
    ],
    [50, 'looking after jobs fails until this is fixed: no list'],
    [30, 'taking chats works again'],
  ]);
});
