import mongoose from 'mongoose';
import { withDatabase } from './given-mongo.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** A proxy in front of a store, and the URL of the store through the proxy. */
export interface StoreProxy {
  readonly proxy: TcpProxy;
  readonly url: string;
}

/** A proxy for an S3 endpoint. */
export async function startS3Proxy(endpoint: string): Promise<StoreProxy> {
  const { hostname, port } = new URL(endpoint);
  const proxy = await startTcpProxy(Number(port), hostname);
  return { proxy, url: `http://127.0.0.1:${proxy.port}` };
}

/** A proxy for a single Redis. */
export async function startRedisProxy(redisUrl: string): Promise<StoreProxy> {
  const { hostname, port } = new URL(redisUrl);
  const proxy = await startTcpProxy(Number(port), hostname);
  return { proxy, url: `redis://127.0.0.1:${proxy.port}` };
}

/** A proxy for the primary of a replica set. With the URL, clients connect to that member only. */
export async function startMongoProxy(mongoUrl: string): Promise<StoreProxy> {
  const [hostname = '', port = ''] = (await findPrimary(mongoUrl)).split(':');
  const proxy = await startTcpProxy(Number(port), hostname);
  const url = new URL(mongoUrl.replace(/\/\/([^/?]*@)?[^/?]+/, `//$1127.0.0.1:${proxy.port}`));
  url.searchParams.delete('replicaSet');
  url.searchParams.set('directConnection', 'true');
  return { proxy, url: url.href };
}

async function findPrimary(mongoUrl: string): Promise<string> {
  const client = new mongoose.mongo.MongoClient(withDatabase(mongoUrl, 'admin'));
  try {
    const hello = await client.db().command({ hello: 1 });
    return typeof hello['primary'] === 'string' ? hello['primary'] : new URL(mongoUrl).host;
  } finally {
    await client.close();
  }
}
