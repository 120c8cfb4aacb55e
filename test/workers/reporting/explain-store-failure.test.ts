import { S3ServiceException } from '@aws-sdk/client-s3';
import test from 'ava';
import mongoose from 'mongoose';
import { AppError } from '../../../shared/contract/errors.ts';
import { explainStoreFailure } from '../../../workers/reporting/explain-store-failure.ts';

const { MongoServerError, MongoTopologyClosedError } = mongoose.mongo;

test('a rejected MongoDB login is reported with the variable to change', (t) => {
  const refused = new MongoServerError({ message: 'Authentication failed.', code: 18 });
  t.regex(explainStoreFailure(refused), /MONGODB_URL: Authentication failed\. .*authSource/);
});

test('a missing MongoDB permission is reported without the command that required it', (t) => {
  const message = 'not authorized on books to execute command { find: "prices", signature: { hash: 1 } }';
  const reason = explainStoreFailure(new MongoServerError({ message, code: 13 }));
  t.regex(reason, /MONGODB_URL needs the role readWrite .*: not authorized on books to execute command\.$/);
});

test('a replica set without a primary is reported with its variable, even if the error for callers wraps the failure', (t) => {
  const cause = new MongoTopologyClosedError('Topology is closed');
  const reason = explainStoreFailure(new AppError('service_unavailable', { cause }));
  t.regex(reason, /No primary found with MONGODB_URL \(Topology is closed\).*replicaSet/);
});

test('a 403 from S3 is reported with the variable of the credentials, and every other failure keeps its own message', (t) => {
  const s3Error = (httpStatusCode: number) =>
    new S3ServiceException({
      name: 'UnknownError',
      $fault: 'client',
      message: 'UnknownError',
      $metadata: { httpStatusCode },
    });
  t.regex(explainStoreFailure(s3Error(403)), /AWS_SECRET_ACCESS_KEY.*403/);
  t.is(explainStoreFailure(s3Error(500)), 'UnknownError');
  t.is(explainStoreFailure(new Error('connect ECONNREFUSED')), 'connect ECONNREFUSED');
});
