// Runs the example given as its first argument: node dist/examples/main.js chat "Hello!"
const examples = {
  'semantic-search': () => import('./semantic-search.ts'),
  'embed-file': () => import('./embed-file.ts'),
  chat: () => import('./chat.ts'),
  image: () => import('./image.ts'),
  billing: () => import('./billing.ts'),
};

const [, , name = ''] = process.argv;
if (Object.hasOwn(examples, name)) {
  // Removes the name, so that the example finds its arguments as if it had been started directly.
  process.argv.splice(2, 1);
  await examples[name as keyof typeof examples]();
} else {
  process.stderr.write(`Usage: npm run example -- ${Object.keys(examples).join('|')} [arguments]\n`);
  process.exitCode = 2;
}
