import { spawn, type ChildProcess } from 'node:child_process';

/**
 * Waits on its stdin, whose other end the supervisor alone holds: however the supervisor ends, the pipe closes. Then
 * it ends the parts that still run, in the order in which the supervisor would have. It is a shell, which weighs a
 * megabyte where a second Node would weigh forty.
 */
const script = `
trap '' INT HUP TERM
stages=$STAGES
while read -r line; do stages=$line; done
is_any_alive() {
  for pid in $pids; do
    kill -0 "$pid" 2>/dev/null || continue
    # A zombie stays where nobody reaps it, as in some containers; it has ended all the same.
    case "$(cat "/proc/$pid/stat" 2>/dev/null)" in *') Z '*) continue ;; esac
    return 0
  done
  return 1
}
IFS=/
for pids in $stages; do
  IFS=' '
  for pid in $pids; do kill -TERM "$pid" 2>/dev/null; done
  tries=0
  while [ $tries -lt 50 ] && is_any_alive; do tries=$((tries + 1)); sleep 0.1; done
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
done
`;

const restartDelayMs = 200;

/** Lower stages end first. */
export const stopStages = [0, 1, 2] as const;
export type StopStage = (typeof stopStages)[number];

/** Ends every part when the supervisor was killed without a chance to do it. */
export class Guardian {
  #child: ChildProcess | null = null;
  #stopping = false;
  readonly #running = new Map<string, { stage: StopStage; pid: number }>();

  start(): void {
    const startAgain = (): void => {
      if (!this.#stopping) setTimeout(() => this.#restart(), restartDelayMs).unref();
    };
    try {
      this.#child = this.#spawn(startAgain);
    } catch {
      // The system may be out of memory for the moment.
      startAgain();
    }
  }

  /** Names the process that a part runs as; null when it does not run. */
  watch(stage: StopStage, name: string, pid: number | null): void {
    if (pid === null) this.#running.delete(name);
    else this.#running.set(name, { stage, pid });
    this.#tell();
  }

  /** For a supervisor that has ended its parts itself. */
  stop(): void {
    this.#stopping = true;
    // It ignores the gentler signals, which reach whole process groups.
    this.#child?.kill('SIGKILL');
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  #spawn(startAgain: () => void): ChildProcess {
    // A session of its own: what is sent to the supervisor's process group must not reach it.
    const child = spawn('/bin/sh', ['-c', 'eval "$SCRIPT"', 'model-gateway-guardian'], {
      detached: true,
      // In its environment, so that a list of processes shows a name and not a program's text; and what runs already
      // too, so that it knows it from its first moment.
      env: { PATH: '/usr/bin:/bin', SCRIPT: script, STAGES: this.#describe() },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    // Of a guardian that was killed, the pipe says EPIPE; its exit is what matters, and that starts the next one. There is
    // no pipe where the system is out of files.
    (child.stdin as typeof child.stdin | undefined)?.on('error', () => undefined);
    child.on('exit', startAgain);
    // The system may be out of processes or files for the moment; without a listener that would end the supervisor.
    child.on('error', () => {
      if (child.pid === undefined) startAgain();
    });
    child.unref();
    return child;
  }

  #restart(): void {
    if (!this.#stopping) this.start();
  }

  #tell(): void {
    this.#child?.stdin?.write(`${this.#describe()}\n`);
  }

  #describe(): string {
    const ofStage = (wanted: StopStage): string =>
      [...this.#running.values()].flatMap(({ stage, pid }) => (stage === wanted ? [pid] : [])).join(' ');
    // A blank stands for a stage without parts.
    return stopStages.map((stage) => ofStage(stage) || ' ').join('/');
  }
}
