import test from 'ava';
import {
  nextFileTurn,
  nextReadTurn,
  nextTurnWithoutKey,
  nextWorkTurn,
  processInReadTurns,
  processInTurns,
} from '../../../shared/fairness/work-turns.ts';

test.serial(
  'accounts take turns even if one has many requests, and one request continues per event-loop iteration',
  async (t) => {
    const order: string[] = [];
    let iterations = 0;
    let isCounting = true;
    const count = (): void => {
      iterations += 1;
      if (isCounting) setImmediate(count);
    };
    setImmediate(count);
    const takeTurn = async (accountId: string): Promise<void> => {
      await nextWorkTurn(accountId);
      order.push(accountId);
    };
    await Promise.all([
      ...Array.from({ length: 20 }, () => takeTurn('many')),
      takeTurn('one'),
      takeTurn('other'),
    ]);
    isCounting = false;
    t.is(order.length, 22);
    t.true(order.indexOf('one') <= 2 && order.indexOf('other') <= 2, order.join(' '));
    t.true(iterations >= 20, `${iterations} iterations`);
  },
);

test.serial('callers without a key share one turn, even from many networks', async (t) => {
  const order: string[] = [];
  const record = (name: string) => (): number => order.push(name);
  const networks = Array.from({ length: 200 }, (_, i) => `network ${i}`);
  const crowd = networks.map((name) => nextTurnWithoutKey(name, 'getHealth').then(record('crowd')));
  const flood = Array.from({ length: 50 }, () =>
    nextTurnWithoutKey('network 0', 'getHealth').then(record('flood')),
  );
  const turns = Array.from({ length: 20 }, () => nextWorkTurn('account').then(record('account')));
  const late = nextTurnWithoutKey('late network', 'getHealth').then(record('late'));
  await Promise.all([...crowd, ...flood, ...turns, late]);
  // The account gets every second turn.
  t.true(order.lastIndexOf('account') <= 41, String(order.lastIndexOf('account')));
  // Networks take turns among themselves: the last one is served before the network with 50 calls is done.
  t.true(order.indexOf('late') < order.indexOf('flood'), order.join());
});

test.serial(
  'a network that sends many operations gets no more turns than one that requests a single operation',
  async (t) => {
    const order: string[] = [];
    const record = (name: string) => (): number => order.push(name);
    const flood = Array.from({ length: 90 }, (_, i) =>
      nextTurnWithoutKey('flooding', `operation ${i % 9}`).then(record(`flood ${i % 9}`)),
    );
    const modest = Array.from({ length: 5 }, () =>
      nextTurnWithoutKey('modest', 'getHealth').then(record('modest')),
    );
    await Promise.all([...flood, ...modest]);
    t.true(order.lastIndexOf('modest') <= 10, order.join());
    // The operations of one network take turns, too.
    t.true(order.indexOf('flood 8') <= 18, order.join());
  },
);

test.serial(
  'each chunk of a file waits for at most one turn of each account and one of all public operations',
  async (t) => {
    const order: string[] = [];
    const record = (name: string) => (): number => order.push(name);
    const others = Array.from({ length: 900 }, (_, i) =>
      nextTurnWithoutKey(`network ${i % 3}`, `operation ${i % 9}`).then(record('page')),
    );
    const accounts = Array.from({ length: 200 }, (_, i) =>
      nextWorkTurn(`account ${i % 20}`).then(record('account')),
    );
    const sendFile = async (network: string): Promise<void> => {
      for (let i = 0; i < 3; i += 1) await nextFileTurn(network).then(record(`file of ${network}`));
    };
    await Promise.all([sendFile('a'), ...others, ...accounts]);
    t.true(order.lastIndexOf('file of a') <= 3 * 22, String(order.lastIndexOf('file of a')));
  },
);

test.serial(
  'free reads continue after everything else that waits, and their accounts take turns',
  async (t) => {
    const order: string[] = [];
    const record = (name: string) => (): number => order.push(name);
    const many = Array.from({ length: 20 }, () => nextReadTurn('many').then(record('read of many')));
    const one = nextReadTurn('one').then(record('read of one'));
    // A request whose work takes several turns, of which only one waits at a time.
    const work = async (): Promise<void> => {
      for (let i = 0; i < 10; i += 1) await nextWorkTurn('one').then(record('work'));
    };
    const publicCalls = Array.from({ length: 5 }, () =>
      nextTurnWithoutKey('network', 'getHealth').then(record('public')),
    );
    await Promise.all([...many, one, work(), ...publicCalls]);
    t.true(Math.max(order.lastIndexOf('work'), order.lastIndexOf('public')) < order.indexOf('read of many'));
    t.true(order.indexOf('read of one') <= order.indexOf('read of many') + 1, order.join());
  },
);

test.serial('free reads continue a few times per second, even if other work never ends', async (t) => {
  const reading = new AbortController();
  let workTurns = 0;
  const work = async (): Promise<void> => {
    while (!reading.signal.aborted) {
      await nextWorkTurn('busy');
      workTurns += 1;
      const untilMs = performance.now() + 1;
      while (performance.now() < untilMs);
    }
  };
  const works = [work(), work()];
  for (let i = 0; i < 5; i += 1) await nextReadTurn('reader');
  t.true(workTurns >= 5 * 5, `${workTurns} turns of work during 5 of reads`);
  reading.abort();
  await Promise.all(works);
});

test.serial('processInReadTurns completes its items in order, and lets work run in between', async (t) => {
  const taken: number[] = [];
  const reading = new AbortController();
  let workTurns = 0;
  const work = async (): Promise<void> => {
    while (!reading.signal.aborted) {
      await nextWorkTurn('busy');
      workTurns += 1;
    }
  };
  const working = work();
  const items = Array.from({ length: 10 }, (_, i) => i);
  await processInReadTurns(items, 'reader', (item) => {
    const untilMs = performance.now() + 2;
    while (performance.now() < untilMs);
    taken.push(item);
  });
  reading.abort();
  await working;
  t.deepEqual(taken, items);
  t.true(workTurns >= items.length, `${workTurns} turns of work`);
});

test.serial('processInTurns completes its items in order, and lets other work run in between', async (t) => {
  const taken: number[] = [];
  let others = 0;
  const timer = setInterval(() => (others += 1), 1);
  await processInTurns(
    Array.from({ length: 30 }, (_, i) => i),
    'account',
    (item) => {
      const untilMs = performance.now() + 4;
      while (performance.now() < untilMs);
      taken.push(item);
    },
  );
  clearInterval(timer);
  t.deepEqual(
    taken,
    Array.from({ length: 30 }, (_, i) => i),
  );
  t.true(others >= 5, `${others} others`);
});
