import mongoose from 'mongoose';
import { callMongo, type MongoConnection } from '../storage/mongo-client.ts';
import { createWebModels, type WebModels } from './web-models.ts';

/** The documents of the account area, as models over the process's one connection pool. */
export interface WebDatabase {
  /** Runs commands of the models. @throws AppError `service_unavailable` where MongoDB is away */
  call<T>(run: (models: WebModels) => Promise<T>): Promise<T>;
  /** For reads that end by themselves much later, as a cursor does; `call` covers their beginning alone. */
  models(): Promise<WebModels>;
  /** Safe to repeat. */
  createIndexes(): Promise<void>;
}

/**
 * Connects to nothing yet: mongoose takes over a client only once it has connected, so the first command connects it,
 * and makes the unique indexes: that an account has one user rests on one. Where MongoDB is away that command fails within the
 * client's two seconds, and the next one tries again. From then on the client reconnects by itself, and the models with
 * it, since they buffer nothing.
 */
export function openWebDatabase(mongo: MongoConnection): WebDatabase {
  let unprepared: WebModels | null = null;
  let opened: WebModels | null = null;
  let opening: Promise<WebModels> | null = null;
  const open = async (): Promise<WebModels> => {
    await mongo.client.connect();
    unprepared ??= openModels(mongo);
    await createUniqueIndexes(unprepared);
    opened = unprepared;
    return opened;
  };
  const models = async (): Promise<WebModels> => {
    if (opened !== null) return opened;
    opening ??= open().finally(() => (opening = null));
    return await opening;
  };
  const call: WebDatabase['call'] = async (run) => await callMongo(async () => await run(await models()));
  return {
    call,
    models,
    async createIndexes() {
      await call(createIndexes);
    },
  };
}

/** A failure of these is one of the account area; workers make the others, and say so where they cannot. */
async function createUniqueIndexes({ users, links }: WebModels): Promise<void> {
  for (const { schema, collection } of [users, links]) {
    for (const [fields, options] of schema.indexes()) {
      if (options?.unique === true)
        await collection.createIndex(fields as Record<string, 1>, { unique: true });
    }
  }
}

async function createIndexes({ users, sessions, links, audit }: WebModels): Promise<void> {
  for (const model of [users, sessions, links, audit]) await model.createIndexes();
}

function openModels(mongo: MongoConnection): WebModels {
  // An instance of its own: the global one would keep every connection that was ever opened.
  const connection = new mongoose.Mongoose().createConnection().setClient(mongo.client);
  // The client's own default is the database `test`, where the URL names none.
  return createWebModels(connection.useDb(mongo.db.databaseName));
}
