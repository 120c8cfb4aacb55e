// decision 0072
//
// Bundles packages that consist of many files into a few files in dist/node_modules, where compiled code finds them first.
// Finding and reading some 1500 files takes most of a second, in each process and in the thread of each test file.
// Usage: node bundle-packages.mjs
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundleFolder } from './bundle-folder.mjs';
import { root } from './processes.mjs';

const chunkFolder = '.packages';

/** What our code imports of each package. */
const bundled = {
  '@aws-sdk/client-s3': ['.'],
  '@aws-sdk/s3-request-presigner': ['.'],
  '@fastify/busboy': ['.'],
  '@koa/cors': ['.'],
  '@koa/router': ['.'],
  '@opentelemetry/api': ['.'],
  '@opentelemetry/exporter-trace-otlp-http': ['.'],
  '@opentelemetry/resources': ['.'],
  '@opentelemetry/sdk-trace-base': ['.'],
  ajv: ['dist/2020.js'],
  'ajv-formats': ['.'],
  bson: ['.'],
  bullmq: ['.'],
  ioredis: ['.'],
  koa: ['.'],
  'koa-body': ['.'],
  'koa-compose': ['.'],
  mongoose: ['.'],
  'node-cron': ['.'],
  nodemailer: ['.'],
  'postal-mime': ['.'],
  'smtp-server': ['.'],
  svgpath: ['.'],
  typebox: ['.'],
  undici: ['.'],
  uuid: ['.'],
  yaml: ['.'],
};

/** Native, or optional and then not installed, or loaded only for credentials that files of AWS contain. */
const external = [
  /^@aws-sdk\/credential-provider(s$|-(ini|login|process|sso|web-identity)$)/,
  /^@mongodb-js\/zstd$/,
  /^(aws4|gcp-metadata|kerberos|mongodb-client-encryption|msgpackr-extract|snappy|socks)$/,
];

const listEntries = () =>
  Object.entries(bundled)
    .filter(([name]) => existsSync(join(root, 'node_modules', name)))
    .flatMap(([name, paths]) => paths.map((path) => ({ name, path })));

const specifierOf = ({ name, path }) => (path === '.' ? name : `${name}/${path}`);

async function bundlePackages() {
  rmSync(bundleFolder, { recursive: true, force: true });
  const entries = listEntries();
  if (entries.length === 0) return;
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map((entry, i) => [`package-${i}`, specifierOf(entry)])),
    external,
    platform: 'node',
    preserveEntrySignatures: 'strict',
    logLevel: 'silent',
  });
  const { output } = await bundle.write({
    dir: join(bundleFolder, chunkFolder),
    entryFileNames: '[name].js',
    format: 'esm',
  });
  await bundle.close();
  for (const [i, entry] of entries.entries()) {
    const fileName = `package-${i}.js`;
    const chunk = output.find((file) => file.fileName === fileName);
    await writeEntry(entry, fileName, chunk.exports);
  }
}

/** Writes the file that an import finds. It exports the same names as the package itself does in Node. */
async function writeEntry({ name, path }, fileName, exported) {
  const folder = join(bundleFolder, name);
  const file = path === '.' ? 'index.js' : path;
  const depth = name.split('/').length + file.split('/').length - 1;
  const chunk = JSON.stringify(`${'../'.repeat(depth)}${chunkFolder}/${fileName}`);
  const names = Object.keys(await import(specifierOf({ name, path })));
  const isCommonJs = exported.length === 1 && exported[0] === 'default';
  const named = names.filter((item) => item !== 'default' && item !== 'module.exports');
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(
    join(folder, file),
    isCommonJs
      ? `import all from ${chunk};\nexport default all;\nexport const { ${named.join(', ')} } = all;\n`
      : `export * from ${chunk};\n${names.includes('default') ? `export { default } from ${chunk};\n` : ''}`,
  );
  const exports = { '.': './index.js', './*': './*' };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name, type: 'module', exports })}\n`);
}

await bundlePackages();
// Some packages keep timers.
process.exit(0);
