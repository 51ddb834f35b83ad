/**
 * C++17 over the C API, header only: handles that close themselves, statuses as exceptions, texts as
 * std::string_view. What is not here is in the C headers, which all of this includes; get() gives the C
 * handle.
 *
 * Orchestrations stay C functions: their stack is dropped, not unwound, when they are evicted or the engine
 * stops. So no object with a destructor may live across a thole_await...(), and no exception may leave them
 * (thole/orchestration.h has the rules). Activities are ordinary code: see thole::handler.
 */
#ifndef THOLE_THOLE_HPP
#define THOLE_THOLE_HPP
#include "thole/async.h"
#include "thole/client.h"
#include "thole/embedding.h"
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thole
{

/** A status other than THOLE_OK, with its sentence. */
class error : public std::runtime_error
{
  public:
    explicit error(const thole_error &err) : std::runtime_error(err.text), status_(err.status)
    {
    }
    thole_status status() const noexcept
    {
        return status_;
    }

  private:
    thole_status status_;
};

/** Throws unless @p status is THOLE_OK. */
inline void check(thole_status status, thole_error &err)
{
    if (status == THOLE_OK)
        return;
    err.status = status;
    if (err.text[0] == '\0')
        std::strncpy(err.text, thole_status_text(status), sizeof err.text - 1);
    throw error(err);
}

/** For the C API. Less than nothing, such as what is left of a time that is over, is 0: one look. */
inline uint64_t wait_ms(std::chrono::milliseconds within) noexcept
{
    return within.count() > 0 ? static_cast<uint64_t>(within.count()) : 0;
}

/** Borrowed, as is what view() gives. */
inline thole_slice slice(std::string_view text) noexcept
{
    return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}
inline std::string_view view(thole_slice bytes) noexcept
{
    return {reinterpret_cast<const char *>(bytes.ptr), bytes.len};
}

/** How an instance ended. */
struct outcome {
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    std::string output, error_type; /**< as in thole_outcome */
    uint64_t execution = 0;
    bool completed() const noexcept
    {
        return status == THOLE_INSTANCE_COMPLETED;
    }
};

/** thole_client. Safe to use from several threads at once; calls block. All throw thole::error. */
class client
{
  public:
    /** @p options NULL: from the environment. */
    explicit client(const thole_client_options *options = nullptr)
    {
        thole_error err{};
        check(thole_client_open(options, &handle_, &err), err);
    }
    client(client &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    client &operator=(client &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~client()
    {
        thole_client_close(handle_);
    }
    thole_client *get() const noexcept
    {
        return handle_;
    }

    /** @return Whether an engine has accepted it: thole_client_start_with(). An id in use: THOLE_CONFLICT. */
    bool start(std::string_view instance, std::string_view orchestration, std::string_view input = {},
               const thole_start_options *options = nullptr)
    {
        thole_error err{};
        bool accepted = false;
        check(thole_client_start_with(handle_, slice(instance), slice(orchestration), slice(input), options,
                                      &accepted, &err),
              err);
        return accepted;
    }
    /** THOLE_TIMEOUT: it has not ended yet. */
    outcome wait(std::string_view instance, std::chrono::milliseconds within)
    {
        thole_error err{};
        thole_outcome ended{};
        check(thole_client_wait(handle_, slice(instance), wait_ms(within), &ended, &err), err);
        return taken(ended);
    }
    /** Starts it and waits. */
    outcome run(std::string_view instance, std::string_view orchestration, std::string_view input,
                std::chrono::milliseconds within)
    {
        thole_error err{};
        thole_outcome ended{};
        check(thole_client_run(handle_, slice(instance), slice(orchestration), slice(input), wait_ms(within),
                               &ended, &err),
              err);
        return taken(ended);
    }
    /** @return Whether it is kept for an instance that does not exist yet. @p request_id the same for every
     * repetition of one signal; empty = a new one. */
    bool signal(std::string_view instance, std::string_view name, std::string_view data = {},
                std::string_view request_id = {})
    {
        thole_error err{};
        bool kept = false;
        check(thole_client_signal(handle_, slice(instance), slice(name), slice(data), slice(request_id),
                                  &kept, &err),
              err);
        return kept;
    }
    void cancel(std::string_view instance, std::string_view reason, std::string_view request_id = {})
    {
        thole_error err{};
        thole_end_options const options{sizeof options, slice(reason), slice(request_id), {}};
        check(thole_client_cancel_with(handle_, slice(instance), &options, &err), err);
    }
    void terminate(std::string_view instance, std::string_view reason, std::string_view request_id = {})
    {
        thole_error err{};
        thole_end_options const options{sizeof options, slice(reason), slice(request_id), {}};
        check(thole_client_terminate_with(handle_, slice(instance), &options, &err), err);
    }
    std::string query(std::string_view instance, std::string_view name, std::string_view input = {})
    {
        thole_error err{};
        thole_slice output{};
        check(thole_client_query(handle_, slice(instance), slice(name), slice(input), &output, &err), err);
        std::string text(view(output));
        thole_client_release(output);
        return text;
    }

  private:
    static outcome taken(thole_outcome &ended)
    {
        outcome result;
        result.status = ended.status;
        result.output = std::string(view(ended.output));
        result.error_type = std::string(view(ended.error_type));
        result.execution = ended.execution;
        thole_outcome_release(&ended);
        return result;
    }
    thole_client *handle_ = nullptr;
};

/**
 * thole_async: requests for event loops (thole/async.h has the rules). Each callback is called once; what it
 * throws comes out of dispatch(), behind the other callbacks of that turn.
 */
class async
{
  public:
    using callback = std::function<void(const thole_completion &)>;
    /** @p of must outlive it. */
    explicit async(client &of, size_t in_flight_max = 0) : thrown_(std::make_unique<std::exception_ptr>())
    {
        thole_error err{};
        thole_async_options const options{sizeof options, in_flight_max};
        check(thole_async_open(of.get(), &options, &handle_, &err), err);
    }
    async(async &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), thrown_(std::move(other.thrown_))
    {
    }
    async &operator=(async &&) = delete;
    /** Abandons what is under way; callbacks are called, what they throw is lost. */
    ~async()
    {
        thole_async_close(handle_);
    }
    /** To be polled for input. */
    int fd() const noexcept
    {
        return thole_async_fd(handle_);
    }
    /** @return How many callbacks were called. */
    size_t dispatch()
    {
        size_t const called = thole_async_dispatch(handle_);
        if (*thrown_)
            std::rethrow_exception(std::exchange(*thrown_, nullptr));
        return called;
    }
    size_t in_flight() const noexcept
    {
        return thole_async_in_flight(handle_);
    }
    bool abandon(uint64_t request) noexcept
    {
        return thole_async_abandon(handle_, request);
    }
    /** All return the number of the request and throw when it is refused: then there is no callback. */
    uint64_t start(std::string_view instance, std::string_view orchestration, std::string_view input,
                   callback done, const thole_start_options *options = nullptr)
    {
        return request(std::move(done), thole_async_start, slice(instance), slice(orchestration),
                       slice(input), options);
    }
    uint64_t run(std::string_view instance, std::string_view orchestration, std::string_view input,
                 std::chrono::milliseconds within, callback done)
    {
        return request(std::move(done), thole_async_run, slice(instance), slice(orchestration), slice(input),
                       wait_ms(within));
    }
    uint64_t wait(std::string_view instance, std::chrono::milliseconds within, callback done)
    {
        return request(std::move(done), thole_async_wait, slice(instance), wait_ms(within));
    }
    uint64_t signal(std::string_view instance, std::string_view name, std::string_view data, callback done,
                    std::string_view request_id = {})
    {
        return request(std::move(done), thole_async_signal, slice(instance), slice(name), slice(data),
                       slice(request_id));
    }
    uint64_t cancel(std::string_view instance, std::string_view reason, callback done,
                    std::string_view request_id = {})
    {
        thole_end_options const options{sizeof options, slice(reason), slice(request_id), {}};
        return request(std::move(done), thole_async_cancel, slice(instance), &options);
    }
    uint64_t terminate(std::string_view instance, std::string_view reason, callback done,
                       std::string_view request_id = {})
    {
        thole_end_options const options{sizeof options, slice(reason), slice(request_id), {}};
        return request(std::move(done), thole_async_terminate, slice(instance), &options);
    }
    uint64_t query(std::string_view instance, std::string_view name, std::string_view input, callback done)
    {
        return request(std::move(done), thole_async_query, slice(instance), slice(name), slice(input));
    }
    thole_async *get() const noexcept
    {
        return handle_;
    }

  private:
    struct pending {
        callback done;
        std::exception_ptr *thrown; /* the first one is kept */
    };
    static void completed(void *arg, const thole_completion *completion)
    {
        std::unique_ptr<pending> const own(static_cast<pending *>(arg));
        try {
            own->done(*completion);
        } catch (...) {
            if (!*own->thrown)
                *own->thrown = std::current_exception();
        }
    }
    template <typename Function, typename... Arguments>
    uint64_t request(callback done, Function *ask, Arguments... arguments)
    {
        auto own = std::make_unique<pending>(pending{std::move(done), thrown_.get()});
        uint64_t number = 0;
        thole_error err{};
        check(ask(handle_, arguments..., completed, own.get(), &number, &err), err);
        (void)own.release(); /* completed() has it */
        return number;
    }
    thole_async *handle_ = nullptr;
    std::unique_ptr<std::exception_ptr> thrown_;
};

/** Thrown by a handler: a failure with a type, which ends the tries if @c final. */
struct failure : std::runtime_error {
    failure(std::string type_, const std::string &text, bool final_ = false)
        : std::runtime_error(text), type(std::move(type_)), final(final_)
    {
    }
    std::string type;
    bool final;
};
/** Thrown by a handler whose token has fired: the activity ends as cancelled. */
struct cancelled : std::exception {
    const char *what() const noexcept override
    {
        return "cancelled";
    }
};

/**
 * A thole_activity_fn from a function that takes and gives texts, and throws:
 *   std::string charge(thole_activity *act, std::string_view order);
 *   program.activity("charge", thole::handler<charge>);
 * An exception is a failed try: thole::failure with its type, any other std::exception with its what().
 */
template <std::string (*F)(thole_activity *, std::string_view)>
thole_status handler(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    try {
        std::string const output = F(act, view(input));
        void *const bytes = thole_activity_alloc(act, output.size() + 1);
        if (bytes == nullptr)
            return THOLE_NOMEM;
        std::memcpy(bytes, output.data(), output.size());
        *ret_output = {static_cast<uint8_t *>(bytes), output.size()};
        return THOLE_OK;
    } catch (const cancelled &) {
        return THOLE_CANCELLED;
    } catch (const failure &why) {
        return why.final ? thole_activity_fail_final(act, slice(why.type), "%s", why.what())
                         : thole_activity_fail_as(act, slice(why.type), "%s", why.what());
    } catch (const std::exception &why) {
        return thole_activity_fail(act, "%s", why.what());
    } catch (...) {
        return thole_activity_fail(act, "an exception that is no std::exception");
    }
}

/** A thole_program that is put together. It must outlive what runs it. */
class program
{
  public:
    explicit program(std::string name) : name_(std::move(name))
    {
    }
    program(const program &) = delete;
    program &operator=(const program &) = delete;
    /** @p arg for thole_orchestration_arg(), borrowed as long as the program. @p stack_bytes  0: 64 KiB. */
    program &orchestration(std::string name, thole_orchestration_fn *run, uint32_t version = 1,
                           void *arg = nullptr, size_t stack_bytes = 0)
    {
        thole_orchestration_entry entry{};
        entry.name = kept(std::move(name));
        entry.run = run;
        entry.version = version;
        entry.arg = arg;
        entry.stack_bytes = stack_bytes;
        orchestrations_.push_back(entry);
        return *this;
    }
    /** @p options and @p arg, for thole_activity_arg(), borrowed as long as the program. */
    program &activity(std::string name, thole_activity_fn *run,
                      const thole_activity_options *options = nullptr, void *arg = nullptr)
    {
        thole_activity_entry entry{};
        entry.name = kept(std::move(name));
        entry.run = run;
        entry.options = options;
        entry.arg = arg;
        activities_.push_back(entry);
        return *this;
    }
    /** Valid until something is registered. */
    const thole_program *get()
    {
        program_.size = sizeof program_;
        program_.name = name_.c_str();
        program_.orchestrations = orchestrations_.empty() ? nullptr : orchestrations_.data();
        program_.orchestrations_len = orchestrations_.size();
        program_.activities = activities_.empty() ? nullptr : activities_.data();
        program_.activities_len = activities_.size();
        return &program_;
    }
    /** thole_main(). */
    int main(int argc, char **argv)
    {
        return thole_main(argc, argv, get());
    }

  private:
    const char *kept(std::string name)
    {
        names_.push_back(std::move(name));
        return names_.back().c_str();
    }
    std::string name_;
    std::deque<std::string> names_; /* whose elements stay where they are */
    std::vector<thole_orchestration_entry> orchestrations_;
    std::vector<thole_activity_entry> activities_;
    thole_program program_{};
};

namespace detail
{

/** thole_worker or thole_engine (thole/embedding.h). */
template <typename Handle, auto Start, auto Wait, auto Stop, auto Join> class role
{
  public:
    /** Returns when it is checked; it connects in the background. @p code must outlive this. */
    explicit role(program &code, const std::vector<std::string> &arguments = {})
    {
        std::vector<const char *> words;
        thole_error err{};
        for (const std::string &argument : arguments)
            words.push_back(argument.c_str());
        words.push_back(nullptr);
        check(Start(code.get(), words.data(), &handle_, &err), err);
    }
    role(role &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    role &operator=(role &&) = delete;
    /** Stops it and waits for its end. */
    ~role()
    {
        Stop(handle_);
        (void)Join(handle_, nullptr);
    }
    /** @return False: it does not serve yet. Throws what it was refused with. */
    bool wait(std::chrono::milliseconds within)
    {
        thole_error err{};
        thole_status const status = Wait(handle_, wait_ms(within), &err);
        if (status != THOLE_TIMEOUT)
            check(status, err);
        return status == THOLE_OK;
    }
    /** Returns at once; also from a signal handler. */
    void stop() noexcept
    {
        Stop(handle_);
    }
    /** Waits for the end. Throws what it was refused with. */
    void join()
    {
        thole_error err{};
        check(Join(std::exchange(handle_, nullptr), &err), err);
    }
    Handle *get() const noexcept
    {
        return handle_;
    }

  private:
    Handle *handle_ = nullptr;
};

} // namespace detail

using worker =
    detail::role<thole_worker, thole_worker_start, thole_worker_wait, thole_worker_stop, thole_worker_join>;
using engine =
    detail::role<thole_engine, thole_engine_start, thole_engine_wait, thole_engine_stop, thole_engine_join>;

} // namespace thole
#endif
