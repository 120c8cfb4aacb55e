import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';
import { attacks } from './attacks.ts';
import type { AttackPlan } from './scenario.ts';

logUncaught('bench-attacker', { fd: 2 });

/** Runs in a separate process, so that the attack's CPU use does not distort the measured account's latency. */
process.once('message', (message) => {
  const { scenario, target } = message as AttackPlan;
  const attack = Object.hasOwn(attacks, scenario) ? attacks[scenario] : undefined;
  if (attack === undefined) throw new Error(`there is no attack ${scenario}`);
  attack(target).then(
    () => {
      process.once('message', () => process.exit(0));
      process.send!('ready');
    },
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
// Exit if the measuring process is gone.
process.once('disconnect', () => process.exit(1));
